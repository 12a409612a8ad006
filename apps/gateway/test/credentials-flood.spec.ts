import { eventually } from '@app/testing/eventually';
import { gate } from '@app/testing/gate';
import { MAX_FIRST_QUESTIONS, MAX_WAITING_QUESTIONS } from '../src/admission/authenticator';
import { RunningGateway } from './running-gateway';
import { BODY } from './sent-calls';

/** One address may have four fifths of the waiting ones. */
const STRANGERS = MAX_FIRST_QUESTIONS + Math.ceil(0.8 * MAX_WAITING_QUESTIONS);

describe('while as many new credentials are checked as may be', () => {
  let gateway: RunningGateway;
  beforeEach(async () => (gateway = await RunningGateway.start()));
  afterEach(() => gateway.stop());
  const add = (headers = {}) => gateway.post('/v1/users/add', BODY, headers);

  it('answers further ones with 503 before Fastify, in one log line, and known ones as ever', async () => {
    expect((await add()).status).toBe(200);
    const { open: finish, opened } = gate();
    gateway.rabbit.checking = opened;
    const strangers = Array.from({ length: STRANGERS }, (_, index) => add({ 'x-svc-auth-token': `wrong-${index}` }));
    await eventually(async () => (await gateway.metric('gateway_authentications_total', { source: 'miss' })) >= 1 + STRANGERS);

    const further = await Promise.all(['a', 'b'].map((token) => add({ 'x-svc-auth-token': token })));
    for (const { status, headers, json } of further) {
      expect([status, headers['retry-after']]).toEqual([503, '1']);
      expect(headers['x-request-id']).toBeTruthy();
      expect(json().error).toMatchObject({ status: 'UNAVAILABLE' });
    }
    expect(await gateway.log.line({ limit: 'credentials' })).toMatchObject({ calls: 2 });
    expect((await add()).status).toBe(200);

    finish();
    await Promise.all(strangers);
    expect((await add({ 'x-svc-auth-token': 'a' })).status).toBe(200);
  });
});
