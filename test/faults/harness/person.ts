/** A user whose id, name and e-mail address can be found in a dump, a queue or a log. */
export const personOf = (number: number) => ({
  userId: `canary-${number}`,
  name: `Canary ${number}`,
  email: `canary-${number}@example.com`,
});
