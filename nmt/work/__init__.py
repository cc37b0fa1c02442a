"""Work in chunks, by executors: in this process, in others, on a cluster; and the folders of long jobs."""
