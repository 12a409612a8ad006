// Preloaded into a service: a body with this in it kills the process that reads it, as a bug in native code does.
const { parse } = JSON;
JSON.parse = (text, ...rest) => {
  if (String(text).includes('the poison pill')) process.kill(process.pid, 'SIGKILL');
  return parse(text, ...rest);
};
