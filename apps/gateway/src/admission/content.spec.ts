import type { IncomingHttpHeaders } from 'node:http';
import { refuseContent } from './content';

const refused = (headers: IncomingHttpHeaders) => {
  try {
    refuseContent(headers);
    return undefined;
  } catch (error) {
    return (error as { httpStatus: number }).httpStatus;
  }
};
const json = (headers: IncomingHttpHeaders = {}) => ({ 'content-type': 'application/json', ...headers });

describe('refuseContent', () => {
  it.each([
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json ; charset=utf8',
    'application/json; profile=x',
  ])('takes %s', (type) => {
    expect(refused({ 'content-type': type })).toBeUndefined();
  });

  it.each([
    undefined,
    '',
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/problem+json',
    'text/json',
    'application/json, text/plain',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
  ])('refuses %s with 415', (type) => {
    expect(refused({ 'content-type': type })).toBe(415);
  });

  it('accepts content encoding identity and refuses others with 415', () => {
    expect(refused(json({ 'content-encoding': 'Identity' }))).toBeUndefined();
    expect(refused(json({ 'content-encoding': 'gzip' }))).toBe(415);
    expect(refused(json({ 'content-encoding': 'identity, br' }))).toBe(415);
  });

  it('refuses more than 1 MiB by its declared length with 413', () => {
    expect(refused(json({ 'content-length': '1048576' }))).toBeUndefined();
    expect(refused(json({ 'content-length': '1048577' }))).toBe(413);
  });
});
