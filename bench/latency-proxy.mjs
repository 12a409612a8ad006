// A way to a server that takes longer. Started by rows/writers.mjs.
//   node bench/latency-proxy.mjs '{"host": …, "port": …, "latencyMs": …, "program": …}'   `program`: the compiled test/faults/harness/fault-proxy.ts
// stdout: the address once it listens. It ends when its stdin does.
import { createRequire } from 'node:module';

const { host, port, latencyMs, program } = JSON.parse(process.argv[2]);
const { FaultProxy } = createRequire(import.meta.url)(program);
const proxy = await FaultProxy.start({ host, port });
// There only: a round trip takes so much longer.
proxy.change({ latencyMs }, 'toServer');
process.stdin.on('end', () => process.exit(0)).resume();
process.stdout.write(`${proxy.through('tcp://proxy')}\n`);
