package org.wraith

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import java.nio.file.Path

// Longer than any test takes, so that a hanging test fails.
internal const val PATIENCE = 60_000L

internal fun within(patience: Long = PATIENCE, work: suspend CoroutineScope.() -> Unit) =
    runBlocking { withTimeout(patience, work) }

internal suspend inline fun <reified E : Throwable> failure(work: suspend () -> Unit): E {
    try {
        work()
    } catch (thrown: Throwable) {
        if (thrown is E) return thrown
        throw thrown
    }
    throw AssertionError("nothing was thrown, but ${E::class.simpleName} was expected")
}

internal fun newNode() = Node(NodeOptions(lan = "off", listen = "127.0.0.1:0"))

internal suspend fun offered(node: Node, path: Path, options: OfferOptions = OfferOptions()): Pair<Offer, String> {
    val offer = node.offer(Content.Paths(listOf("$path")), Recipient.Ticket, options)
    return offer to offer.ticket()!!
}

internal suspend fun asked(node: Node, ticket: String, folder: Path, options: FetchOptions = FetchOptions()): Incoming =
    node.fetch(ticket, Target.Folder("$folder"), options)
