"""The ledger of disruptions: which evictions the budgets still allow, whatever they are for."""
