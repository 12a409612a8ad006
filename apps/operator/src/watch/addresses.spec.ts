import { Addresses } from './addresses';

type LookUp = NonNullable<ConstructorParameters<typeof Addresses>[1]>;

/** Addresses by name; a name that is not among them cannot be resolved. */
let known: Record<string, [address: string, family: number][]>;

const lookUp = (async (name: string) => {
  const found = known[name];
  if (!found) throw Object.assign(new Error('no'), { code: 'ENOTFOUND' });
  return found.map(([address, family]) => ({ address, family }));
}) as unknown as LookUp;

it('finds one address of each process behind a name', async () => {
  known = {
    both: [
      ['::1', 6],
      ['127.0.0.1', 4],
    ],
    replicas: [
      ['10.0.0.2', 4],
      ['10.0.0.1', 4],
    ],
    six: [['fd00::1', 6]],
  };
  expect(await new Addresses(['both:1', 'replicas:80', 'six:2', 'nothing:3'], lookUp).find()).toEqual({
    addresses: ['127.0.0.1:1', '10.0.0.1:80', '10.0.0.2:80', '[fd00::1]:2'],
    problems: ['nothing has no address (ENOTFOUND)'],
  });
});

it('keeps the addresses of a name that cannot be resolved, and forgets those that others no longer have', async () => {
  const addresses = new Addresses(['users:1', 'readers:1', 'none:1'], lookUp);
  known = { users: [['10.0.0.1', 4]], readers: [['10.0.1.1', 4]] };
  expect((await addresses.find()).addresses).toEqual(['10.0.0.1:1', '10.0.1.1:1']);
  known = { users: [['10.0.0.2', 4]] };
  const { addresses: found, problems } = await addresses.find();
  expect(found).toEqual(['10.0.0.2:1', '10.0.1.1:1']);
  expect(problems).toHaveLength(2);
});

it('watches no more than a hundred', async () => {
  known = { many: Array.from({ length: 101 }, (_, index) => [`10.0.0.${index}`, 4]) };
  const { addresses, problems } = await new Addresses(['many:1'], lookUp).find();
  expect(addresses).toHaveLength(100);
  expect(problems).toEqual(['101 processes were found, and only 100 are watched']);
});
