"""Parts of GPUs on a live cluster: the pods that hold shared devices, and what containers are told of them."""
