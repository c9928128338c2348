package org.wraith

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Path
import java.time.Duration
import kotlin.io.path.createDirectory
import kotlin.io.path.exists
import kotlin.io.path.readBytes
import kotlin.io.path.writeBytes
import kotlin.random.Random

/** Transfers and messages between two nodes over loopback. */
class TransfersTest {
    @TempDir
    lateinit var folder: Path
    private lateinit var film: Path

    @BeforeEach
    fun film() {
        film = folder.resolve("film.mov")
        film.writeBytes(Random(7).nextBytes(5_000_000))
    }

    @Test
    fun `a file arrives byte for byte`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val incoming = asked(newNode(), ticket, folder.resolve("in"))
        assertEquals(5_000_000uL, incoming.offer().bytes)
        assertEquals(listOf("film.mov" to true), incoming.preview()?.map { it.shown to it.isNew })
        assertFalse(folder.resolve("in").exists(), "nothing is written before there is a yes")
        val received = incoming.accept(AcceptOptions()).finished()
        val sent = offer.finished()
        assertArrayEquals(film.readBytes(), folder.resolve("in/film.mov").readBytes())
        assertEquals(listOf(5_000_000uL, 5_000_000uL), listOf(received.bytesMoved, sent.bytesMoved))
    }

    @Test
    fun `events tell the file with its hash and then the end`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val transfer = asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions())
        val told = generateSequence { runBlocking { transfer.nextEvent() } }.toList()
        val file = told.filterIsInstance<Event.File>().single()
        assertEquals("film.mov", file.path)
        assertArrayEquals(hash(film.readBytes()), file.hash)
        assertEquals(Event.Done, told.last())
        assertNull(transfer.nextEvent())
        offer.finished()
    }

    @Test
    fun `progress is read on demand and ends at the total`() = within {
        val (offer, ticket) = offered(newNode(), film)
        assertNull(offer.progress(), "nobody has come")
        val transfer = asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions())
        transfer.finished()
        offer.finished()
        for (progress in listOf(transfer.progress(), offer.progress())) {
            assertEquals(5_000_000uL to 1uL, progress?.let { it.bytes to it.files })
        }
    }

    @Test
    fun `a refusal reaches the sender with its reason`() = within {
        val (offer, ticket) = offered(newNode(), film)
        asked(newNode(), ticket, folder.resolve("in")).refuse("no room")
        val refused = failure<WraithException.Refused> { offer.finished() }
        assertTrue("no room" in refused.message!!, refused.message)
        assertFalse(folder.resolve("in").exists())
    }

    @Test
    fun `an offer is answered once`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val incoming = asked(newNode(), ticket, folder.resolve("in"))
        val transfer = incoming.accept(AcceptOptions())
        assertThrows<WraithException.WrongState> { incoming.accept(AcceptOptions()) }
        failure<WraithException.WrongState> { incoming.refuse("") }
        transfer.finished()
        offer.finished()
    }

    @Test
    fun `a transfer is cancelled in the middle and the sender is told`() = within {
        val options = OfferOptions(bytesPerSecond = 200_000uL)
        val (offer, ticket) = offered(newNode(), film, options)
        val transfer = asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions())
        while (transfer.nextEvent() != Event.Accepted) {
            // Skips earlier events.
        }
        assertTrue(transfer.cancel())
        failure<WraithException.Cancelled> { transfer.finished() }
        failure<WraithException.Cancelled> { offer.finished() }
        assertFalse(folder.resolve("in/film.mov").exists(), "no name before all of it is verified")
    }

    private class Side(val role: Role, val progress: () -> ULong?, val next: suspend () -> Event?,
        val cancel: suspend () -> Boolean, val free: () -> Unit, val finished: suspend () -> Unit)

    @Test
    fun `a stop ends both sides at any moment`() = within(5 * PATIENCE) {
        for (moment in 0 until 20) for (stopped in listOf(Role.SENDER, Role.RECEIVER)) for (cancels in listOf(true, false)) {
            // Half a second is left for the stop.
            val (offer, ticket) = offered(newNode(), film, OfferOptions(bytesPerSecond = 5_000_000uL))
            val into = folder.resolve("in-$moment-$stopped-$cancels")
            val transfer = asked(newNode(), ticket, into).accept(AcceptOptions())
            val sides = listOf(
                Side(Role.SENDER, { offer.progress()?.bytes }, offer::nextEvent, offer::cancel, offer::close, { offer.finished() }),
                Side(Role.RECEIVER, { transfer.progress()?.bytes }, transfer::nextEvent, transfer::cancel, transfer::close, { transfer.finished() }),
            )
            val (own, other) = sides.partition { it.role == stopped }.let { (own, other) -> own.single() to other.single() }
            while (other.next() != Event.Accepted) {
                // Skips earlier events.
            }
            while ((own.progress() ?: 0uL) < (moment * 2_500_000 / 20).toULong()) delay(1)
            if (cancels) assertTrue(own.cancel())
            own.free()
            // No wait for a peer that comes back.
            withTimeout(10_000) { failure<WraithException.Cancelled> { other.finished() } }
            val told = generateSequence { runBlocking { other.next() } }.toList()
            assertEquals(listOf(stopped), told.filterIsInstance<Event.Stopped>().map { it.by })
            assertTrue(told.last() is Event.Failed)
            other.free()
        }
    }

    @Test
    fun `cancelling a coroutine that waits leaves the transfer alone`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val waiting = async(start = CoroutineStart.UNDISPATCHED) { offer.finished() }
        waiting.cancelAndJoin()
        assertTrue(waiting.isCancelled)
        asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions()).finished()
        offer.finished()
    }

    @Test
    fun `cancelling a coroutine that asks stops the question`() = within {
        val (offer, ticket) = offered(newNode(), film)
        offer.cancel()
        val asking = async(start = CoroutineStart.UNDISPATCHED) { asked(newNode(), ticket, folder.resolve("in")) }
        asking.cancelAndJoin()
        failure<CancellationException> { asking.await() }
    }

    @Test
    fun `wrong tickets are told apart`() = within {
        failure<WraithException.InvalidInput> { asked(newNode(), "not a ticket", folder) }
        val (offer, ticket) = offered(newNode(), film)
        assertTrue(offer.cancel())
        val soon = FetchOptions(timeout = Duration.ofMillis(500))
        failure<WraithException.NotFound> { asked(newNode(), ticket, folder.resolve("in"), soon) }
    }

    @Test
    fun `a message arrives in memory`() = within {
        val sender = newNode()
        val what = Content.Bytes("message", "grüße".toByteArray())
        val offer = sender.offer(what, Recipient.Ticket, OfferOptions())
        val incoming = newNode().fetch(offer.ticket()!!, Target.Memory(1000uL), FetchOptions())
        assertEquals(sender.nodeId(), incoming.sender())
        assertEquals("grüße", incoming.accept(AcceptOptions()).bytes().decodeToString())
        offer.finished()
    }

    @Test
    fun `names that are taken are decided by policy and by path`() = within {
        val target = folder.resolve("in").createDirectory()
        target.resolve("film.mov").writeBytes("older".toByteArray())
        val (offer, ticket) = offered(newNode(), film)
        val incoming = asked(newNode(), ticket, target)
        val entry = incoming.preview()!!.single()
        assertTrue(entry.hasConflict)
        val rule = ConflictRule(entry.path, OnConflict.OVERWRITE)
        incoming.accept(AcceptOptions(onConflict = OnConflict.SKIP, rules = listOf(rule))).finished()
        assertArrayEquals(film.readBytes(), target.resolve("film.mov").readBytes())
        offer.finished()
    }

    @Test
    fun `a contact is sent to without a code`() = within {
        val (sender, receiver) = newNode() to newNode()
        val listener = receiver.listen(folder.resolve("in").toString(), AcceptFilter.ANY_PEER)
        sender.addContact(Contact("anna", receiver.nodeId(), listOf(listener.address())))
        val offer = sender.offer(Content.Paths(listOf("$film")), Recipient.Contact("anna"), OfferOptions())
        val incoming = listener.nextOffer()!!
        assertEquals(sender.nodeId(), incoming.sender())
        incoming.accept(AcceptOptions()).finished()
        offer.finished()
        assertArrayEquals(film.readBytes(), folder.resolve("in/film.mov").readBytes())
        listener.stop()
        assertNull(listener.nextOffer())
    }

    @Test
    fun `a state folder keeps the identity`() {
        val options = NodeOptions(stateFolder = folder.resolve("state").toString())
        assertEquals(Node(options).nodeId(), Node(options).nodeId())
        assertNotEquals(Node(NodeOptions()).nodeId(), Node(options).nodeId())
    }
}

// Longer than any test takes, so that a hanging test fails.
private const val PATIENCE = 60_000L

private fun within(patience: Long = PATIENCE, work: suspend kotlinx.coroutines.CoroutineScope.() -> Unit) =
    runBlocking { withTimeout(patience, work) }

private suspend inline fun <reified E : Throwable> failure(work: suspend () -> Unit): E {
    try {
        work()
    } catch (thrown: Throwable) {
        if (thrown is E) return thrown
        throw thrown
    }
    throw AssertionError("nothing was thrown, but ${E::class.simpleName} was expected")
}

private fun newNode() = Node(NodeOptions(lan = "off", listen = "127.0.0.1:0"))

private suspend fun offered(node: Node, path: Path, options: OfferOptions = OfferOptions()): Pair<Offer, String> {
    val offer = node.offer(Content.Paths(listOf("$path")), Recipient.Ticket, options)
    return offer to offer.ticket()!!
}

private suspend fun asked(node: Node, ticket: String, folder: Path, options: FetchOptions = FetchOptions()): Incoming =
    node.fetch(ticket, Target.Folder("$folder"), options)
