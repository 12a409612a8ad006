// The health check of a container: exit 0 when the process in it is ready to serve.
const { HEALTH_HOST: host, HEALTH_PORT: port } = process.env;
// A process on every address is on this one as well.
const address = !host || host === '::' || host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
const ready = await fetch(`http://${address}:${port}/health/ready`, { signal: AbortSignal.timeout(4000) }).then(
  (response) => response.ok,
  () => false,
);
process.exitCode = ready ? 0 : 1;
