import { hasNoRoom, isDatabaseAway, isRefused, NoServer, ReadOnlyServer, reasonOf } from './errors';

/** A connection that cannot be opened has executed nothing, so its commands wait instead of failing. */
it.each([
  [{ code: 'CERT_HAS_EXPIRED', message: 'certificate has expired' }, true],
  [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID', message: 'names' }, true],
  [{ code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', message: 'alert' }, true],
  [{ code: 'ERR_TLS_FILES', message: 'files' }, true],
  [{ code: '28000', message: 'connection requires a valid client certificate' }, true],
  [{ code: '28P01', message: 'password authentication failed' }, true],
  [{ message: 'The server does not support SSL connections' }, true],
  [{ code: '3D000', message: 'database does not exist' }, true],
  [{ code: '55000', message: 'database is not currently accepting connections' }, true],
  [{ code: '57P04', message: 'the database was dropped' }, true],
  [{ code: '23505', message: 'duplicate key' }, false],
  [{ code: '42501', message: 'permission denied' }, false],
])('of %j the database is away: %j', (fields, away) => {
  expect(isDatabaseAway(Object.assign(new Error(fields.message), fields))).toBe(away);
});

const full = Object.assign(new Error('sorry, too many clients already'), { code: '53300' });
const down = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

it.each([
  ['a server without room', full, true],
  ['a primary without room beside its standby', new NoServer([], [full, new ReadOnlyServer()]), true],
  ['a server that is down', down, false],
  ['two servers that are', new NoServer([], [down, down]), false],
])('tells %s from one that is away', (_, error, expected) => {
  expect(hasNoRoom(error)).toBe(expected);
});

it.each([
  ['Connection terminated: a statement has no answer', 'Connection terminated: a statement has no answer'],
  ['timeout expired', 'timeout expired'],
  ['database "secret" does not exist', 'Error'],
])("gives for the driver's %j without a code the reason %j", (message, reason) => {
  expect(reasonOf(new Error(message))).toBe(reason);
});

it.each([
  ['28P01', true],
  ['3D000', true],
  ['55000', false],
  ['57P03', false],
])('says of %s whether waiting cannot help: %j', (code, refused) => {
  expect(isRefused(Object.assign(new Error(), { code }))).toBe(refused);
});
