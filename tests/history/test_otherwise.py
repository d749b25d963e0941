"""What would have had room when is known in a cluster of no resources as well."""

from tests.builders import node

from tenure.engine.otherwise import RoomOverTime


def test_tasks_that_ask_for_nothing_come_and_go_where_no_resource_is_counted():
    room = RoomOverTime([node("n")], [])
    room.occupy(0, 0, 0, [])
    room.leave(0, 0)
    assert room.start_without([([], 1)], 5) == 5
