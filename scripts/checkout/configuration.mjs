import { built } from './project.mjs';

/**
 * Reads configurations as the built programs will read them.
 * @param {Record<string, string>} configurations the file of each class below dist/
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined} every problem of all of them, once; undefined when there is none
 */
export function configurationProblems(configurations, env) {
  /** @type {Set<string>} */
  const problems = new Set();
  for (const [name, file] of Object.entries(configurations)) {
    try {
      new (built(file)[name])(env);
    } catch (error) {
      if (error.name !== 'ConfigError') throw error;
      for (const problem of error.problems) problems.add(problem);
    }
  }
  return problems.size > 0 ? `The configuration is invalid:\n  - ${[...problems].join('\n  - ')}` : undefined;
}
