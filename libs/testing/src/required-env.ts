/** Reads a variable that the test runner sets. Tests never skip: a missing variable is an error that says how to run them. */
export function requiredEnv(name: string): string {
  const value = process.env[name];
  if (!value)
    throw new Error(`${name} is not set: run the tests through "npm test -- PATH", which starts the servers they need.`);
  return value;
}
