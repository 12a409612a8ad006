// Required into the processes of ours, with --expose-gc: SIGUSR2 collects their garbage, so that what is left of the heap is in use.
process.on('SIGUSR2', () => globalThis.gc());
