export async function startContainerRabbit() { throw new Error('todo'); }
