import { spawn } from 'node:child_process';

// A child outlives a parent that is killed with SIGKILL. So a shell in a session of its own reads a pipe that only we
// hold: when it ends without the word "done", we are dead, and the shell cleans up in our place.
const WATCH = `
pid=0
while read -r word value; do
  case "$word" in pid) pid=$value ;; done) exit 0 ;; esac
done
gone() { ! kill -0 "$1" 2>/dev/null; }
await() { i=0; while [ $i -lt "$2" ] && ! gone "$1"; do sleep 0.1; i=$((i + 1)); done; }
end_group() {
  [ "$pid" -gt 1 ] || return 0
  kill -CONT "-$pid" 2>/dev/null
  kill "-$1" "$pid" 2>/dev/null
  await "$pid" "$2"
  kill -KILL "-$pid" 2>/dev/null
  await "-$pid" 20
}
# Something that is not in the group, initdb for one, may still be writing there.
remove_directory() { i=0; until rm -rf "$1" 2>/dev/null || [ $i -ge 50 ]; do sleep 0.1; i=$((i + 1)); done; }
`;

/**
 * @typedef {object} Reaper
 * @property {(pid: number) => void} watch the process group to end should we die; 0 for none
 * @property {() => void} dismiss we have cleaned up ourselves
 */

/**
 * @param {string} cleanup shell commands run after our death; `end_group <signal> <tenths of a second>` asks the watched
 *   process group to end and kills what is left of it; `remove_directory <path>`
 * @param {Record<string, string>} [variables] what the commands refer to, so that no value is pasted into a script
 * @returns {Reaper}
 */
export function startReaper(cleanup, variables = {}) {
  const shell = spawn('sh', ['-c', WATCH + cleanup], {
    cwd: '/',
    env: { PATH: process.env.PATH, ...variables },
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  shell.unref();
  // A pipe keeps this process alive, which the type of a stream does not say.
  /** @type {import('node:net').Socket} */ (shell.stdin).unref();
  shell.stdin.on('error', () => {}); // it was killed: nothing to tell it any more
  shell.on('error', () => {});
  return {
    watch: (pid) => shell.stdin.write(`pid ${pid}\n`),
    dismiss: () => shell.stdin.end('done\n'),
  };
}
