import 'reflect-metadata';
import { asyncApiDocument } from './document';

process.stdout.write(`${JSON.stringify(asyncApiDocument(), null, 2)}\n`);
