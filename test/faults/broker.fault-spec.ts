import { malformedMessages, recreateExchange, recreateQueue, endConnections } from './broker-faults';
import { describeFaults } from './run-fault';

describeFaults('the broker', [recreateQueue(5), endConnections(5), recreateExchange(3), malformedMessages(10_000)]);
