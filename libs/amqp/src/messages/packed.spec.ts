import { pack, unpack, Unreadable } from './packed';

const length = (bytes: number) => {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(bytes);
  return buffer;
};
const withIndex = (index: unknown, bodies = '') => {
  const json = Buffer.from(JSON.stringify(index));
  return Buffer.concat([length(json.length), json, Buffer.from(bodies)]);
};

describe('several messages in one', () => {
  it('keep their heads and their exact bodies', () => {
    const parts = [
      { head: ['é "1"', { a: [1] }], body: Buffer.from('ünïcode 😀') },
      { head: [], body: Buffer.alloc(0) },
      { head: [null], body: Buffer.from([0, 255]) },
    ];
    expect(unpack(pack(parts), 3)).toEqual(parts);
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['a length that is incomplete', Buffer.alloc(3)],
    ['a length beyond the content', length(1)],
    ['the longest length', length(0xffffffff)],
    ['an index that is not JSON', Buffer.concat([length(1), Buffer.from('{')])],
    ['an index that is no array', withIndex({})],
    ['no entry', withIndex([])],
    ['too many entries', withIndex([[0], [0], [0], [0]])],
    ['an entry that is no array', withIndex([5], '12345')],
    ['an entry without a length', withIndex([['a']])],
    ['a negative length', withIndex([[1], [-1]])],
    ['a fraction', withIndex([[0.5], [0.5]], '1')],
    ['lengths that exceed the content', withIndex([[4]], '123')],
    ['bytes without an entry', withIndex([[2]], '123')],
  ])('cannot be read from %s', (_, content) => {
    expect(() => unpack(content, 3)).toThrow(Unreadable);
  });
});
