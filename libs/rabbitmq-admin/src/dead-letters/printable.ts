/** Escapes control characters, so that a text cannot control the terminal or imitate another line. */
export const printable = (text: string): string =>
  // eslint-disable-next-line no-control-regex -- it replaces control characters
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

/** Printable form of an unknown value; undefined unless it is a non-empty string. */
export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? printable(value) : undefined;
