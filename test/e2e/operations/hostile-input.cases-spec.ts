import { request } from 'node:http';
import * as fc from 'fast-check';
import { DEMO_HEADERS, OPERATIONS, type HttpAnswer, type System } from '@app/testing/system/system';

const STATUSES = [
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'RESOURCE_EXHAUSTED',
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
];
const CANARY = 'canary-7f3a';

export const hostileInput = (system: () => System): void =>
  describe('hostile input', () => {
    /** Checks the envelope: `{result}` with 200, `{error:{message,status,details?}}` otherwise, and no other field. */
    function expectEnvelope({ status, headers, body }: HttpAnswer): void {
      expect(headers.get('x-request-id')).toBeTruthy();
      expect(headers.get('content-type')).toMatch(/^application\/json/);
      if (status === 200) {
        expect(Object.keys(body)).toEqual(['result']);
        return;
      }
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
      expect(Object.keys(body)).toEqual(['error']);
      expect(STATUSES).toContain(body.error?.status);
      expect(typeof body.error?.message).toBe('string');
      expect(Object.keys(body.error ?? {}).filter((key) => !['message', 'status', 'details'].includes(key))).toEqual([]);
    }

    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    const data = (fields: string) => `{"data":{"organizationId":"o",${fields}}}`;

    it.each<[string, string | Uint8Array<ArrayBuffer>, number]>([
      ['no body', '', 400],
      ['no JSON', 'hello', 400],
      ['half an object', '{"data":', 400],
      ['a string', '"data"', 400],
      ['null', 'null', 400],
      ['an array', '[]', 400],
      ['no data', '{}', 400],
      ['data that is null', '{"data":null}', 400],
      ['data that is an array', '{"data":[]}', 400],
      ['NUL in a value', data('"x":"\\u0000"'), 400],
      ['NUL in a key', data('"\\u0000":1'), 400],
      ['a lone surrogate', data('"x":"\\ud800"'), 400],
      ['invalid UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400],
      ['a prototype key', data('"x":{"__proto__":{}}'), 400],
      ['constructor.prototype', data('"constructor":{"prototype":{}}'), 400],
      ['a number out of range', data('"x":1e999'), 400],
      ['depth 33', data(`"x":${nested(32)}`), 400],
      ['depth 100,000', data(`"x":${nested(100_000)}`), 400],
      ['more than 1 MiB', data(`"x":"${'x'.repeat(1024 * 1024)}"`), 413],
    ])('is answered in the envelope: %s', async (_, body, status) => {
      for (const operation of OPERATIONS) {
        const answer = await system().post(operation, body);
        expectEnvelope(answer);
        expect([answer.status, answer.body.error?.status]).toEqual([status, 'INVALID_ARGUMENT']);
      }
    });

    it.each(['text/plain', 'application/x-www-form-urlencoded', 'application/xml', 'multipart/form-data', 'json'])(
      'of content type %s is 415',
      async (type) => {
        const answer = await system().post('users/add', '{"data":{}}', { 'content-type': type });
        expectEnvelope(answer);
        expect(answer.status).toBe(415);
      },
    );

    it('of an unknown path is 404, of another method 405 with Allow', async () => {
      const unknown = await system().post('nope', '{}');
      expectEnvelope(unknown);
      expect([unknown.status, unknown.body.error?.status]).toEqual([404, 'NOT_FOUND']);
      for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const response = await fetch(`${system().services.gateway.url}/v1/users/add`, { method });
        const answer = {
          status: response.status,
          headers: response.headers,
          body: (await response.json()) as HttpAnswer['body'],
        };
        expectEnvelope(answer);
        expect([answer.status, answer.body.error?.status, answer.headers.get('allow')]).toEqual([
          405,
          'INVALID_ARGUMENT',
          'POST',
        ]);
      }
    });

    it('with too large headers is 431 in the envelope', async () => {
      const answer = await new Promise<{ status?: number; text: string }>((resolve, reject) => {
        const url = new URL(`${system().services.gateway.url}/v1/users/add`);
        request(url, { method: 'POST', headers: { ...DEMO_HEADERS, 'x-large': 'x'.repeat(40_000) } }, (response) => {
          let text = '';
          response.on('data', (chunk: Buffer) => (text += chunk.toString()));
          response.on('end', () => resolve({ status: response.statusCode, text }));
        })
          .on('error', reject)
          .end('{}');
      });
      expect(answer.status).toBe(431);
      expect(JSON.parse(answer.text)).toMatchObject({ error: { status: 'INVALID_ARGUMENT' } });
    });

    it('at random is never a 5xx, and always in the envelope', async () => {
      const names = [
        ...[
          'organizationId',
          'documentId',
          'folderId',
          'locationId',
          'userId',
          'notificationIds',
          'users',
          'order',
          'pageSize',
          'pageToken',
        ],
        ...[
          'actionUser',
          'notificationId',
          'displayHeadlineMessageTemplate',
          'displayHeadlineMessageTemplateData',
          'displayBodyMessage',
        ],
        ...[
          'notifyUsers',
          'notifyAll',
          'notificationSourceData',
          'createDocument',
          'createOrganization',
          'name',
          'email',
          'initial',
          'x',
        ],
      ];
      const text = fc.oneof(
        fc.string({ unit: 'binary', maxLength: 40 }),
        fc.constantFrom('', ' ', '__proto__', '\u0000', '\ud800', '\u202e', CANARY, "'; --", '{actionUser}', 'x'.repeat(257)),
      );
      const user = fc.record({ userId: text, name: text, email: text, initial: text }, { requiredKeys: [] });
      const value = fc.oneof(
        text,
        fc.double(),
        fc.boolean(),
        fc.constant(null),
        user,
        fc.array(fc.oneof(user, text), { maxLength: 5 }),
        fc.jsonValue(),
      );
      const likely = fc.record(
        {
          organizationId: text,
          documentId: text,
          users: fc.array(user, { maxLength: 5 }),
          actionUser: user,
          displayHeadlineMessageTemplate: text,
          notifyUsers: fc.array(user, { maxLength: 5 }),
          notificationSourceData: fc.dictionary(text, fc.jsonValue()),
          displayHeadlineMessageTemplateData: fc.dictionary(text, text),
          userId: text,
        },
        { requiredKeys: ['organizationId'] },
      );
      const body = fc.oneof(
        likely.map((fields) => ({ data: fields })),
        fc.dictionary(fc.constantFrom(...names), value).map((fields) => ({ data: { organizationId: 'o', ...fields } })),
        fc.jsonValue(),
      );
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...OPERATIONS), body, async (operation, json) => {
          expectEnvelope(await system().post(operation, JSON.stringify(json)));
        }),
        { numRuns: 1500 },
      );
    });

    it('leaves every service running and no body in any log', () => {
      for (const { app, exitCode, output } of Object.values(system().services)) {
        expect([app, exitCode]).toEqual([app, undefined]);
        expect(output.filter((line) => line.includes(CANARY))).toEqual([]);
      }
    });
  });
