// The first import of a script that may be process 1 of a container: without a handler Node ignores signals there.
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));
