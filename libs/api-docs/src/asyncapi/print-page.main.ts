import 'reflect-metadata';
import { asyncApiDocument } from './document';
import { messagesPage } from './page';

process.stdout.write(messagesPage(asyncApiDocument()));
