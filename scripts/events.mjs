// npm run events -- republish: publishes the events of everything that the users service has once more.
import { runTool } from './stack/tool.mjs';

process.exit(await runTool('dist/apps/users/src/tools/republish.main.js', process.argv.slice(2), 'USERS_DATABASE_URL'));
