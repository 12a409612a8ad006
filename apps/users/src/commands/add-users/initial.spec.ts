import { initialOf } from './initial';

describe('initialOf', () => {
  it.each([
    ['a letter in upper case', 'ada', 'A'],
    ['nothing but the first letter', 'Grace Hopper', 'G'],
    ['white space in front ignored', ' \t\u00a0 linus', 'L'],
    ['an accent as one code point', 'élise', 'É'],
    ['an accent as a combining mark, kept with its letter', 'e\u0301lise', 'E\u0301'],
    ['an emoji family as one', '👩‍👩‍👧‍👦 Family', '👩‍👩‍👧‍👦'],
    ['a flag as one', '🇩🇪 Team', '🇩🇪'],
    ['a skin tone with its hand', '👋🏽 hi', '👋🏽'],
    ['a surrogate pair as one, in upper case', '𐐨bc', '𐐀'],
    ['a letter of a script that is written from right to left', 'שלום', 'ש'],
    ['a direction mark in front ignored', '\u200fمريم', 'م'],
    ['a consonant with its vowel sign', 'किरण', 'कि'],
    ['a Hangul syllable made of jamo', '\u1112\u1161\u11ab국', '\u1112\u1161\u11ab'],
    ['i without a locale', 'ilker', 'I'],
    ['a digit', '7of9', '7'],
  ])('takes %s', (_, name, initial) => {
    expect(initialOf(name)).toBe(initial);
  });

  it.each([
    ['empty', ''],
    ['blank', ' \u2003\t'],
    ['a direction mark', '\u200e'],
  ])('has none for a name that is %s', (_, name) => {
    expect(initialOf(name)).toBeUndefined();
  });

  it('agrees with the segmenter for every pair of printable ASCII characters', () => {
    const segmenter = new Intl.Segmenter('und', { granularity: 'grapheme' });
    const printable = Array.from({ length: 0x7f - 0x20 }, (_, offset) => String.fromCharCode(0x20 + offset));
    const names = printable.flatMap((first) => printable.map((second) => first + second));
    const taken = (name: string) => [...segmenter.segment(name.trimStart())][0]?.segment.toUpperCase();
    expect(names.map(initialOf)).toEqual(names.map(taken));
  });

  it('limits a letter with many combining marks', () => {
    expect(initialOf(`z${'\u0301'.repeat(300)}`)).toBe(`Z${'\u0301'.repeat(31)}`);
  });
});
