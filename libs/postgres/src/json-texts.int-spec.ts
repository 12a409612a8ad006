import fc from 'fast-check';
import { Client } from 'pg';
import { createEmptyDatabase, type TestDatabase } from '@app/testing/database/server-databases';
import { jsonTexts } from './json-texts';

describe(jsonTexts.name, () => {
  let database: TestDatabase;
  let client: Client;

  beforeAll(async () => {
    database = await createEmptyDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const stored = async (texts: readonly string[]): Promise<string[]> => {
    const { rows } = await client.query<{ texts: string[] }>('SELECT $1::text[] AS texts', [jsonTexts(texts)]);
    return rows[0].texts;
  };

  it('is a literal with the same texts', async () => {
    const texts = ['{"a":"\\"\\\\\\n\\u0000\\ud800"}', '"NULL"', 'null', '{}', '"{,}"', '" \u2028\u007f ü "'];
    expect(typeof jsonTexts(texts)).toBe('string');
    expect(await stored(texts)).toEqual(texts);
    expect(await stored([])).toEqual([]);
  });

  it('is no literal for formatted JSON, which has characters that JSON escapes in a string', async () => {
    const texts = ['{\n\t"a": 1\n}', '{}'];
    expect(jsonTexts(texts)).toBe(texts);
    expect(await stored(texts)).toEqual(texts);
  });

  it('has the same texts for any JSON', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.json({ stringUnit: 'binary' })), async (texts) => {
        expect(await stored(texts)).toEqual(texts);
      }),
    );
  });
});
