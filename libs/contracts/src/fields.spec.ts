import { Field, fieldsOf, textProblem } from './fields';

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

describe(fieldsOf, () => {
  const Text = (problem?: string) => Field(() => problem, { type: 'string' });
  class Parent {
    @Text()
    first: string;

    @Text()
    changed: string;
  }
  class Child extends Parent {
    @Text('of the child')
    override changed: string;

    @Text()
    last: string;
  }
  class Same extends Child {}

  it('names the fields of the class that a class extends, too, and takes its own for those of the same name', () => {
    const names = (type: new () => object) => fieldsOf(type).map(({ name }) => name);
    expect(names(Parent)).toEqual(['first', 'changed']);
    expect(names(Child)).toEqual(['first', 'changed', 'last']);
    expect(names(Same)).toEqual(['first', 'changed', 'last']);
    expect(fieldsOf(Child)[1].check('')).toBe('of the child');
    expect(fieldsOf(Parent)[1].check('')).toBeUndefined();
  });
});
