// The health check of a container: exit 0 when the process in it is ready to serve. It prints the answer, or why there is none.
const { HEALTH_HOST: host, HEALTH_PORT: port } = process.env;
// A process on every address is on this one as well.
const address = !host || host === '::' || host === '0.0.0.0' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
try {
  const response = await fetch(`http://${address}:${port}/health/ready`, { signal: AbortSignal.timeout(4000) });
  console.log(await response.text());
  process.exitCode = response.ok ? 0 : 1;
} catch (error) {
  console.log(error.cause?.code ?? error.message);
  process.exitCode = 1;
}
