/**
 * A number with what it counts, as a person reads it: `1 letter`, `2 letters`.
 *
 * @param many for several; default: the singular with an s
 */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
