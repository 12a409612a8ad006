// Takes traces and drops them. Prints its port. A GET is answered with the number of bytes so far.
import { createServer } from 'node:http';

let received = 0;
const server = createServer((request, response) => {
  if (request.method === 'GET') return void response.end(String(received));
  request
    .on('data', ({ length }) => (received += length))
    .on('end', () => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address) process.stdout.write(`${address.port}\n`);
});
// It ends with its parent.
process.stdin.resume().on('end', () => process.exit());
