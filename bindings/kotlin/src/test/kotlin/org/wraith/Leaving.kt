@file:JvmName("Leaving")

package org.wraith

import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.DelicateCoroutinesApi
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import java.nio.file.Path
import kotlin.concurrent.thread
import kotlin.system.exitProcess

/** References that nobody frees. */
private val kept = mutableListOf<Any>()

/**
 * Begins a transfer and ends in the middle of it: `WAY sender FILM` or `WAY receiver TICKET FOLDER`. Calls wait while the
 * program ends.
 */
@OptIn(DelicateCoroutinesApi::class)
fun main(words: Array<String>) = runBlocking {
    val (way, role, what) = words
    if (way.endsWith("with-hook")) Runtime.getRuntime().addShutdownHook(thread(start = false) { shutdownAllNodes() })
    val bytes: () -> ULong?
    if (role == "sender") {
        val (offer, ticket) = offered(newNode(), Path.of(what), OfferOptions(bytesPerSecond = 200_000uL))
        println(ticket)
        kept.add(offer)
        GlobalScope.launch(start = CoroutineStart.UNDISPATCHED) { while (offer.nextEvent() != null) continue }
        bytes = { offer.progress()?.bytes }
    } else {
        val transfer = asked(newNode(), what, Path.of(words[3])).accept(AcceptOptions())
        kept.add(transfer)
        GlobalScope.launch(start = CoroutineStart.UNDISPATCHED) { while (transfer.nextEvent() != null) continue }
        bytes = { transfer.progress()?.bytes }
    }
    while ((bytes() ?: 0uL) == 0uL) delay(1)
    when {
        way.startsWith("exit") -> exitProcess(3)
        way.startsWith("throw") -> throw ArithmeticException()
        way == "halt" -> Runtime.getRuntime().halt(3)
    }
}
