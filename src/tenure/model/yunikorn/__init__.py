"""YuniKorn's ``queues.yaml``, read as it is (spec: quota preemption)."""
