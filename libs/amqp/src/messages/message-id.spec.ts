import { newMessageId } from './message-id';

describe(newMessageId.name, () => {
  beforeEach(() => jest.useFakeTimers({ now: 0x01_2345_6789 }));
  afterEach(() => jest.useRealTimers());

  it('is a UUID of version 7', () => {
    expect(newMessageId()).toMatch(/^00012345-6789-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('is greater a millisecond later', () => {
    const earlier = Array.from({ length: 100 }, newMessageId);
    jest.setSystemTime(Date.now() + 1);
    const later = newMessageId();
    expect(earlier.filter((id) => id >= later)).toEqual([]);
  });

  it('differs within a millisecond', () => {
    expect(new Set(Array.from({ length: 1000 }, newMessageId)).size).toBe(1000);
  });
});
