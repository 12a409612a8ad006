import { isDatabaseAway } from './errors';

/** A connection that cannot be opened has executed nothing, so its commands wait instead of failing. */
it.each([
  [{ code: 'CERT_HAS_EXPIRED', message: 'certificate has expired' }, true],
  [{ code: 'ERR_TLS_CERT_ALTNAME_INVALID', message: 'names' }, true],
  [{ code: 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', message: 'alert' }, true],
  [{ code: 'ERR_TLS_FILES', message: 'files' }, true],
  [{ code: '28000', message: 'connection requires a valid client certificate' }, true],
  [{ code: '28P01', message: 'password authentication failed' }, true],
  [{ message: 'The server does not support SSL connections' }, true],
  [{ code: '23505', message: 'duplicate key' }, false],
  [{ code: '42501', message: 'permission denied' }, false],
])('of %j the database is away: %j', (fields, away) => {
  expect(isDatabaseAway(Object.assign(new Error(fields.message), fields))).toBe(away);
});
