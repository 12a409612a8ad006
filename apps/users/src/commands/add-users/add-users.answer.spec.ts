import { answerOf } from './add-users.answer';

describe('answerOf', () => {
  it('distinguishes added, updated and failed users', () => {
    const entries = [{ userId: 'new' }, { userId: 'known' }, { userId: 'bad' }, { userId: 'new' }];
    const answer = answerOf(entries, { added: ['new'], refused: [['bad', 'name must not contain control characters']] });
    expect(JSON.parse(JSON.stringify(answer))).toEqual({
      status: 'success',
      message: 'User(s) processed, 1 of 3 failed.',
      data: {
        new: { success: true, id: '22af645d1859cb5ca6da0c484f1f37ea', message: 'User added.' },
        known: { success: true, id: 'c90ae688b2a3b1fd0751fd743eb385cd', message: 'User updated.' },
        bad: {
          success: false,
          id: 'bae60998ffe4923b131e3d6e4c19993e',
          message: 'name must not contain control characters',
        },
      },
    });
  });

  it('reports success when no entry failed', () => {
    expect(answerOf([{ userId: 'a' }], { added: ['a'], refused: [] }).message).toBe('User(s) processed successfully.');
  });

  it('hashes the UTF-8 of the userId', () => {
    expect(answerOf([{ userId: 'ü' }], { added: [], refused: [] }).data['ü']?.id).toBe('c03410a5204b21cd8229ff754688d743');
  });

  it('keeps property names such as __proto__ as keys', () => {
    const { data } = answerOf([{ userId: '__proto__' }, { userId: 'constructor' }], { added: [], refused: [] });
    expect(JSON.stringify(data)).toContain('"__proto__":{"success":true');
    expect(Object.keys(data)).toEqual(['__proto__', 'constructor']);
  });
});
