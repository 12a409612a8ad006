import { ApiError } from '@app/contracts/error';
import { DeliveryContext } from '../delivery/delivery-context';
import { PublisherRights } from './publisher-rights';

const from = (userId: string | undefined, apiKey = 'key') =>
  new DeliveryContext({
    apiKey,
    userId,
    requestId: 'r',
    awaited: false,
    redelivered: false,
    attempt: 1,
    pattern: 'users.add.v1',
  });

describe(PublisherRights.name, () => {
  const isGranted = jest.fn<Promise<boolean>, [string, string, { requestId: string }]>();
  let publishers: PublisherRights;

  beforeEach(() => {
    isGranted.mockReset();
    publishers = new PublisherRights({ trusted: ['gateway'], isGranted }, 'own');
  });

  it.each(['gateway', 'own'])('trusts %s without asking', async (account) => {
    await publishers.require(from(account));
    expect(isGranted).not.toHaveBeenCalled();
  });

  it('asks once for many messages of one account and one tenant', async () => {
    isGranted.mockResolvedValue(true);
    await Promise.all(Array.from({ length: 50 }, () => publishers.require(from('billing'))));
    await publishers.require(from('billing'));
    expect(isGranted.mock.calls.map(([publisher, apiKey]) => [publisher, apiKey])).toEqual([['billing', 'key']]);
  });

  it.each<[string | undefined, string]>([
    ['billing', 'The broker account "billing" may not act for this API key.'],
    [undefined, 'A message without user_id may not act for this API key.'],
    ['', 'The broker account "" may not act for this API key.'],
  ])('refuses %j', async (account, message) => {
    isGranted.mockResolvedValue(false);
    await expect(publishers.require(from(account))).rejects.toEqual(new ApiError('PERMISSION_DENIED', message));
    expect(isGranted).toHaveBeenCalledWith(account ?? '', 'key', expect.anything());
  });

  it('does not use the answer for one tenant or account for another', async () => {
    isGranted.mockImplementation((publisher, apiKey) => Promise.resolve(publisher === 'billing' && apiKey === 'key'));
    await publishers.require(from('billing'));
    await expect(publishers.require(from('billing', 'other'))).rejects.toThrow(ApiError);
    await expect(publishers.require(from('other'))).rejects.toThrow(ApiError);
    await expect(publishers.require(from(undefined))).rejects.toThrow(ApiError);
  });

  it('asks again after a failed question, and after five seconds', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    const clock = jest.spyOn(performance, 'now').mockReturnValue(1000);
    try {
      isGranted.mockRejectedValueOnce(new ApiError('UNAVAILABLE', 'Not now.'));
      await expect(publishers.require(from('billing'))).rejects.toEqual(new ApiError('UNAVAILABLE', 'Not now.'));
      isGranted.mockResolvedValueOnce(true);
      await publishers.require(from('billing'));
      clock.mockReturnValue(6001);
      jest.advanceTimersByTime(5001);
      isGranted.mockResolvedValueOnce(false);
      await expect(publishers.require(from('billing'))).rejects.toThrow('may not act');
    } finally {
      clock.mockRestore();
      jest.useRealTimers();
    }
  });
});
