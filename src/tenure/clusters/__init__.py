"""What a plan is carried out on: the cluster port and its adapters."""
