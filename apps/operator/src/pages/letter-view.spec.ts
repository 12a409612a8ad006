import type { ConsumeMessage } from 'amqplib';
import { readDeadLetter } from '@app/rabbitmq-admin/dead-letters/dead-letter';
import { LETTER_QUEUES } from '@app/rabbitmq-admin/dead-letters/letter-queue';
import { letterView } from './letter-view';

const view = (content: Buffer | string, headers: Record<string, unknown> = {}): string => {
  const message = { content: Buffer.from(content), properties: { messageId: 'm', userId: 'users', headers }, fields: {} };
  return letterView(readDeadLetter(message as unknown as ConsumeMessage, LETTER_QUEUES[0], 1, new Set(['users']))).text;
};

it('shows a body in lines, and nothing in it as markup or as a control character', () => {
  expect(view('{"a":["<b>"]}')).toContain('{\n  &quot;a&quot;: [\n    &quot;&lt;b&gt;&quot;\n  ]\n}');
  expect(view('\u001b[2J\u202egnp.exe')).toContain('\\u001b[2J\\u202egnp.exe');
  expect(view(Buffer.from([0xff, 0xfe]))).toMatch(/It is not UTF-8.*\/\/4=/s);
});

it('says how much was kept of a body that was cut', () => {
  const stub = (size: number) => view('{"a', { 'x-routing-key': 'users.add.v1', 'x-dead-size': size });
  expect(stub(2000)).toContain('Only the first 3 of its 2000 bytes were kept.');
  expect(stub(3)).not.toContain('were kept');
});

it('cuts long bodies, long headers and many headers', () => {
  const long = view('x'.repeat(1024 * 1024), { long: 'y'.repeat(100_000) });
  expect(long).toContain('The first 65536 of 1048576 characters are shown.');
  expect(long).toContain('… (100000 characters)');
  expect(long.length).toBeLessThan(70_000);
  const many = view('', Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`h${index}`, 'v'])));
  expect(many.match(/<dt>/g)?.length).toBeLessThan(150);
});
