import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP proxy in front of a server, whose open connections a test can silence or cut while new ones work. */
export class TcpLink {
  private readonly sockets = new Set<Socket>();
  private frozen = false;

  private constructor(
    private readonly server: Server,
    /** The given URL with the address of the proxy. */
    readonly url: string,
  ) {}

  static async to(target: string): Promise<TcpLink> {
    const { hostname, port } = new URL(target);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(target);
    url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const link = new TcpLink(server, url.href);
    server.on('connection', (near) => link.join(near, connect(Number(port), hostname)));
    return link;
  }

  /** From now on the open connections pass no data and report no error, as if packets were dropped. */
  silence(): void {
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  /** The same, also for connections that are opened from now on, as if the server stood still. */
  freeze(): void {
    this.silence();
    this.frozen = true;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private join(near: Socket, far: Socket): void {
    if (!this.frozen) near.pipe(far).pipe(near);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
