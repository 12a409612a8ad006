// npm run copy -- rebuild [--rate N]: brings the copy of memberships in notifications in line with users, while both run.
import { runTool } from './stack/tool.mjs';

const [command, ...options] = process.argv.slice(2);
if (command !== 'rebuild') {
  console.error('Usage: npm run copy -- rebuild [--rate N]   for the options see npm run events -- --help');
  process.exit(command === '--help' ? 0 : 2);
}
const distrusted = await runTool('dist/apps/notifications/src/tools/distrust-copy.main.js', [], 'NOTIFICATIONS_DATABASE_URL');
process.exit(
  distrusted || (await runTool('dist/apps/users/src/tools/republish.main.js', ['republish', ...options], 'USERS_DATABASE_URL')),
);
