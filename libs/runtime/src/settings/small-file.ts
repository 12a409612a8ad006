import { readFileSync, statSync } from 'node:fs';

/**
 * Reads a file that a variable names, such as a mounted secret or a certificate.
 *
 * @returns the content, or the problem as the rest of a sentence that starts with the variable's name. The problem never has the content
 */
export function readSmallFile(path: string, maxBytes: number): { value: string } | { problem: string } {
  // A URL here is most likely the secret itself, which must not be printed.
  if (path.includes('://')) return { problem: 'must be the path of a file, not the value itself' };
  try {
    const file = statSync(path);
    // The content of a pipe or a device may have no end.
    if (!file.isFile()) return { problem: `names ${path}, which is not a file` };
    if (file.size > maxBytes) return { problem: `names ${path}, which has more than ${maxBytes} bytes` };
    const value = readFileSync(path, 'utf8');
    return value.trim() === '' ? { problem: `names ${path}, which is empty` } : { value };
  } catch (error) {
    return { problem: `names ${path}, which cannot be read (${(error as NodeJS.ErrnoException).code})` };
  }
}
