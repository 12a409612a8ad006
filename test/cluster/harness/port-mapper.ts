import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Requests of the protocol of epmd, by their first byte. */
const REGISTER = 120;
const PORT_PLEASE = 122;
const NAMES = 110;

/** Answers, by their first byte. */
const REGISTERED = 118;
const PORT = 119;

/** The kind of node and the versions of the protocol that every Erlang since 23 speaks. */
const NODE_TYPE = 77;
const [HIGHEST_VERSION, LOWEST_VERSION] = [6, 5];

/**
 * The port mapper (epmd) of one Erlang node. It answers with the ports that the test chooses, so that the connections to other nodes pass
 * through proxies. A partition of the cluster needs no rights on this machine then.
 */
export class PortMapper {
  /** Programs that registered here: the node, and its command line tools. */
  private readonly registered = new Map<string, number>();

  private constructor(
    private readonly server: Server,
    private readonly portOf: (name: string) => number | undefined,
  ) {
    server.on('connection', (socket) => this.accept(socket));
  }

  /** @param portOf the port that leads to another node; undefined: the port that was registered here */
  static async start(portOf: (name: string) => number | undefined): Promise<PortMapper> {
    const server = createServer();
    const mapper = new PortMapper(server, portOf);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return mapper;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.close();
  }

  private accept(socket: Socket): void {
    let bytes = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('data', (more: Buffer) => {
      bytes = Buffer.concat([bytes, more]);
      if (bytes.length < 2 || bytes.length < 2 + bytes.readUInt16BE(0)) return;
      this.answer(socket, bytes.subarray(2));
      bytes = Buffer.alloc(0);
    });
  }

  private answer(socket: Socket, request: Buffer): void {
    if (request[0] === REGISTER) return this.register(socket, request);
    if (request[0] === PORT_PLEASE) return void socket.end(this.portAnswer(request.subarray(1).toString()));
    if (request[0] === NAMES) return void socket.end(this.names());
    socket.destroy();
  }

  /** A program is registered as long as its connection is open. */
  private register(socket: Socket, request: Buffer): void {
    const name = request.subarray(11, 11 + request.readUInt16BE(9)).toString();
    this.registered.set(name, request.readUInt16BE(1));
    socket.on('close', () => this.registered.delete(name));
    const answer = Buffer.alloc(6);
    answer[0] = REGISTERED;
    // A number that tells this start of the program from earlier ones.
    answer.writeUInt32BE(Math.floor(Math.random() * 2 ** 31) + 4, 2);
    socket.write(answer);
  }

  private portAnswer(name: string): Buffer {
    const port = this.portOf(name) ?? this.registered.get(name);
    if (port === undefined) return Buffer.from([PORT, 1]);
    const answer = Buffer.alloc(14 + name.length);
    answer[0] = PORT;
    answer.writeUInt16BE(port, 2);
    answer[4] = NODE_TYPE;
    answer.writeUInt16BE(HIGHEST_VERSION, 6);
    answer.writeUInt16BE(LOWEST_VERSION, 8);
    answer.writeUInt16BE(name.length, 10);
    answer.write(name, 12);
    return answer;
  }

  private names(): Buffer {
    const port = Buffer.alloc(4);
    port.writeUInt32BE(this.port);
    const lines = [...this.registered].map(([name, at]) => `name ${name} at port ${at}\n`);
    return Buffer.concat([port, Buffer.from(lines.join(''))]);
  }
}
