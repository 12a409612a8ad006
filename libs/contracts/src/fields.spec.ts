import { textProblem } from './fields';

describe(textProblem, () => {
  const problem = textProblem(3);
  const TOO_LONG = ' must be at most 3 characters';

  it('counts code points', () => {
    expect(['abc', 'ab😀', '😀😀😀'].map((text) => problem(text))).toEqual([undefined, undefined, undefined]);
    expect(['abcd', 'abc😀', '😀😀😀😀'].map((text) => problem(text))).toEqual([TOO_LONG, TOO_LONG, TOO_LONG]);
  });

  it('takes no text apart that has too many in any case: one of a megabyte takes ten milliseconds', () => {
    const from = jest.spyOn(Array, 'from');
    try {
      expect([problem('abcdefg'), problem('😀😀😀😀')]).toEqual([TOO_LONG, TOO_LONG]);
      expect(from).not.toHaveBeenCalled();
    } finally {
      from.mockRestore();
    }
  });
});
