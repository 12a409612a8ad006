import * as fc from 'fast-check';
import { ApiError } from './error';
import { MAX_DEPTH, MAX_VALUES, parseJson } from './json';

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe(parseJson.name, () => {
  it('parses any ordinary JSON', () => {
    const ordinary = fc
      .jsonValue({ maxDepth: 20 })
      .filter((value) => !/constructor|prototype|__proto__|\\u0000|\\ud/i.test(JSON.stringify(value)));
    fc.assert(
      fc.property(ordinary, (value) =>
        expect(parseJson(Buffer.from(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value))),
      ),
    );
  });

  it('uses the last of duplicate keys', () => {
    expect(parseJson(Buffer.from('{"a":1,"a":2}'))).toEqual({ a: 2 });
  });

  it('accepts a body of the greatest allowed depth', () => {
    expect(() => parseJson(Buffer.from(nested(MAX_DEPTH)))).not.toThrow();
  });

  it('accepts a body with the most values, whatever its strings contain', () => {
    const list = Array.from({ length: MAX_VALUES - 3 }, () => 0);
    const text = '[{,"\\'.repeat(MAX_VALUES);
    expect(parseJson(Buffer.from(JSON.stringify([text, list])))).toEqual([text, list]);
  });

  it.each([
    ['numbers', '0'],
    ['empty objects', '{}'],
    ['empty lists', '[]'],
    ['fields', '{"a":1}'],
  ])('refuses too many %s, before they are parsed', (_, value) => {
    const parse = jest.spyOn(JSON, 'parse');
    const text = Array.from({ length: MAX_VALUES }, () => value).join();
    expect(() => parseJson(Buffer.from(`[${text}]`))).toThrow('The body must have at most 120000 values.');
    expect(parse).not.toHaveBeenCalled();
    parse.mockRestore();
  });

  it.each([
    ['nothing', ''],
    ['half an object', '{"a":'],
    ['a comment', '{} // x'],
    ['NaN', 'NaN'],
    ['one level too many', nested(MAX_DEPTH + 1)],
    ['a depth that would overflow the stack', nested(100_000)],
    ['a number beyond the range', '{"a":1e400}'],
    ['NUL in a value', '{"a":"x\\u0000"}'],
    ['NUL in a key', '{"x\\u0000":1}'],
    ['a lone high surrogate', '{"a":"\\ud800"}'],
    ['a lone low surrogate in a key', '{"\\udc00":1}'],
    ['__proto__', '{"a":{"__proto__":{"admin":true}}}'],
    ['constructor', '{"constructor":{"prototype":{}}}'],
    ['prototype', '[{"prototype":1}]'],
  ])('refuses %s', (_, text) => {
    expect(() => parseJson(Buffer.from(text))).toThrow(ApiError);
  });

  it('refuses invalid UTF-8, which a decoder would replace silently', () => {
    expect(() => parseJson(Buffer.from([0x22, 0xc3, 0x28, 0x22]))).toThrow('The body must be UTF-8.');
  });

  it('names a byte order mark, which nobody sees', () => {
    expect(() => parseJson(Buffer.from('\ufeff{}'))).toThrow('The body must be JSON, without a byte order mark.');
  });

  it('never quotes the body in its message', () => {
    expect(() => parseJson(Buffer.from('{"secret-word"'))).toThrow(/^(?!.*secret-word)/);
  });
});
