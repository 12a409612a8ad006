// Preloaded into a writer: a command with this text in it fails in its handler, again and again, as by a bug.
const crypto = require('node:crypto');
const { hash } = crypto;
crypto.hash = (algorithm, data, ...rest) => {
  if (typeof data === 'string' && data.includes('the failing text')) throw new Error('a bug of a handler');
  return hash(algorithm, data, ...rest);
};
