export const BODY = '{"data":{"organizationId":"acme","users":[{"userId":"ada"}]}}';
export const OTHER = { 'x-svc-api-key': 'other-key' };
export const head = (length: number, more = '') =>
  `POST /v1/users/add HTTP/1.1\r\nhost: x\r\nx-svc-api-key: demo-key\r\nx-svc-auth-token: demo-token\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n${more}\r\n`;
export const CALL = head(BODY.length) + BODY;
/** A body above the size that is not counted. */
export const LARGE = BODY.padEnd(16 * 1024 + 1);
