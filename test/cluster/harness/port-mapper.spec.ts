import { once } from 'node:events';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { eventually } from '@app/testing/eventually';
import { PortMapper } from './port-mapper';

const registrationOf = (name: string, port: number) => {
  const [portBytes, length] = [Buffer.alloc(2), Buffer.alloc(2)];
  portBytes.writeUInt16BE(port);
  length.writeUInt16BE(name.length);
  // Type, protocol and versions; no extra bytes at the end.
  return Buffer.concat([
    Buffer.from([120]),
    portBytes,
    Buffer.from([77, 0, 0, 6, 0, 5]),
    length,
    Buffer.from(name),
    Buffer.alloc(2),
  ]);
};

describe('the port mapper', () => {
  let mapper: PortMapper;

  beforeEach(async () => {
    mapper = await PortMapper.start((name) => (name === 'other' ? 4711 : undefined));
  });
  afterEach(() => mapper.close());

  function open(request: Buffer) {
    const socket = connect(mapper.port, '127.0.0.1');
    const length = Buffer.alloc(2);
    length.writeUInt16BE(request.length);
    socket.write(Buffer.concat([length, request]));
    return socket;
  }

  const portOf = async (name: string) => {
    const answer = await buffer(open(Buffer.from(`z${name}`)));
    return answer[1] === 0 ? answer.readUInt16BE(2) : undefined;
  };

  it('knows a program as long as its connection is open', async () => {
    const registered = open(registrationOf('self', 1234));
    const [answer] = (await once(registered, 'data')) as [Buffer];
    expect(answer.subarray(0, 2)).toEqual(Buffer.from([118, 0]));
    expect(await portOf('self')).toBe(1234);
    const names = await buffer(open(Buffer.from('n')));
    expect(names.subarray(4).toString()).toBe('name self at port 1234\n');

    registered.destroy();
    await eventually(async () => (await portOf('self')) === undefined);
  });

  it('leads to another node through the port of the test', async () => {
    expect(await portOf('other')).toBe(4711);
    expect(await portOf('unknown')).toBeUndefined();
  });
});
