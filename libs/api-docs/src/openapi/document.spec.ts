import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020';
import { HTTP_MESSAGES } from '@app/contracts/all-messages';
import { validateBody } from '@app/contracts/validate';
import { openApiDocument } from './document';

interface Media {
  schema: object;
  examples: Record<string, { value: object }>;
}
interface Post {
  requestBody: { content: Record<string, Media> };
  responses: Record<string, { description: string; headers: object; content: Record<string, Media> }>;
}

const document = openApiDocument();
const posts = Object.entries(document.paths).map(([path, item]) => [path, (item as { post: Post }).post] as const);

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema({ $id: 'doc', components: document.components });
/** Problems of a value according to a schema, with the references of the document. */
const problemsOf = (schema: object, value: unknown) => {
  const text = JSON.stringify(schema).replaceAll('"#/', '"doc#/');
  const validate = ajv.compile(JSON.parse(text) as object);
  return validate(value) ? [] : validate.errors;
};

describe('openapi.json', () => {
  it('matches the contract classes; npm run docs:generate writes it', () => {
    const committed = readFileSync(join(__dirname, '../../../../openapi.json'), 'utf8');
    expect(committed).toBe(`${JSON.stringify(document, null, 2)}\n`);
  });

  it('has the operations of the contract', () => {
    const three = ['/v1/users/add', '/v1/notifications/add', '/v1/notifications/get'];
    expect(posts.map(([path]) => path)).toEqual(expect.arrayContaining(three));
  });

  it('names an operation after its whole path, because generated clients have a function of this name', () => {
    const named = document.paths['/v1/users/data/delete'] as { post: { operationId: string } };
    expect(named.post.operationId).toBe('usersDataDelete');
  });

  it('describes every tag of an operation', () => {
    const used = Object.values(document.paths).flatMap((item) => (item as { post: { tags: string[] } }).post.tags);
    expect(document.tags.map(({ name }) => name)).toEqual([...new Set(used)]);
  });

  it('has exactly the schemas that it refers to', () => {
    const text = JSON.stringify(document);
    const referred = new Set([...text.matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name));
    expect([...referred].sort()).toEqual(Object.keys(document.components.schemas).sort());
  });

  it.each(posts)('names every status that %s can answer', (path, { responses }) => {
    const expected = [200, 400, 401, 403, 408, 413, 415, 429, 431, 500, 503, 504];
    if (path === '/v1/notifications/add') expected.push(404, 409);
    expect(Object.keys(responses)).toEqual(expected.sort((a, b) => a - b).map(String));
    for (const [status, { headers }] of Object.entries(responses)) {
      expect('Retry-After' in headers).toBe(status === '429' || status === '503');
      expect('x-request-id' in headers).toBe(true);
      expect('x-notification-id' in headers).toBe(path === '/v1/notifications/add' && status === '200');
    }
  });

  it.each(posts)('has a named schema for each body of %s, of which clients make a class', (_, { requestBody, responses }) => {
    const bodies = [requestBody, ...Object.values(responses)].map(({ content }) => content['application/json'].schema);
    expect(bodies.filter((schema) => !('$ref' in schema))).toEqual([]);
  });

  it.each(posts)('has request examples of %s that pass its schema and its validation', (path, { requestBody }) => {
    const message = HTTP_MESSAGES.find(({ http }) => http.path === path);
    const { schema, examples } = requestBody.content['application/json'];
    expect(Object.keys(examples).length).toBeGreaterThan(1);
    for (const { value } of Object.values(examples)) {
      expect(problemsOf(schema, value)).toEqual([]);
      const { data } = value as { data: object };
      expect(JSON.parse(JSON.stringify(validateBody(message!.request, data, 'data')))).toEqual(data);
    }
  });

  it.each(posts)('has answer examples of %s that pass their schemas', (_, { responses }) => {
    for (const [status, { content, description }] of Object.entries(responses)) {
      const { schema, examples } = content['application/json'];
      const errors = description.split('\n\n').length;
      expect(Object.keys(examples).length).toBeGreaterThanOrEqual(status === '200' ? 1 : errors);
      for (const { value } of Object.values(examples)) expect(problemsOf(schema, value)).toEqual([]);
    }
  });

  it('has schemas that refuse the same values as the validation', () => {
    const { schema } = posts[0][1].requestBody.content['application/json'];
    for (const data of [
      {},
      { organizationId: 1, users: [{ userId: 'a' }] },
      { organizationId: ' ', users: [{ userId: 'a' }] },
      { organizationId: 'a', users: [] },
      { organizationId: 'a', users: [{}] },
      { organizationId: 'a', users: Array.from({ length: 1001 }, (_, index) => ({ userId: `${index}` })) },
    ]) {
      expect(problemsOf(schema, { data })).not.toEqual([]);
      expect(() => validateBody(HTTP_MESSAGES[0].request, data, 'data')).toThrow();
    }
  });

  it('explains every error of an operation once in its table', () => {
    const rows = new Set(
      posts.flatMap(([, { responses }]) =>
        Object.entries(responses).flatMap(([http, { description }]) =>
          http === '200' ? [] : description.split('\n\n').map((error) => `| ${http} | ${error.replace(': ', ' | ')} |`),
        ),
      ),
    );
    expect(rows.size).toBeGreaterThan(13);
    for (const row of rows) expect(document.info.description.split(row)).toHaveLength(2);
  });
});
