// The health check of a container: exit 0 when the process in it is ready to serve.
const url = `http://127.0.0.1:${process.env.HEALTH_PORT}/health/ready`;
const ready = await fetch(url, { signal: AbortSignal.timeout(4000) }).then(
  (response) => response.ok,
  () => false,
);
process.exitCode = ready ? 0 : 1;
