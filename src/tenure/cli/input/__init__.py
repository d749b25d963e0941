"""What commands are given: cluster files, live clusters, traces, policies, histories."""
