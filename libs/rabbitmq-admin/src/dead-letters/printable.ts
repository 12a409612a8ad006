/** One line of it cannot move the cursor, ring the bell or pretend to be another: terminals obey control characters. */
export const printable = (text: string): string =>
  // eslint-disable-next-line no-control-regex -- control characters are what it replaces
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

/** The same for what may be anything; undefined unless it is a string with something in it. */
export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? printable(value) : undefined;
