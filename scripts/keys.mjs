// npm run keys -- <command>: creates, lists, rotates, disables and revokes API keys and tokens.
import { runTool } from './stack/tool.mjs';

process.exit(await runTool('dist/apps/users/src/tools/keys.main.js', process.argv.slice(2), 'USERS_DATABASE_URL'));
